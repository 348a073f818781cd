"""Doors for code written for smdebug, which imports these modules; what is behind them lives where the table says.

    access_layer.file            smdebug.compatibility.access_files
    access_layer.s3              smdebug.compatibility.access_files
    access_layer.s3handler       smdebug.compatibility.s3_handler
    access_layer.utils           smdebug.compatibility.run_state
    collection                   smdebug.config.collection
    collection_manager           smdebug.config.collection_manager
    config_constants             smdebug.environment
    config_validator             smdebug.compatibility.loose_names
    error_handling_agent         smdebug.compatibility.error_handling_agent
    hook                         smdebug.capture.hook
    hook_utils                   smdebug.writing.run_writer
    index_reader                 smdebug.reading.index_reader
    json_config                  smdebug.config.json_config
    locations                    smdebug.format.locations
    logger                       smdebug.logger
    modes                        smdebug.mode_keys
    reader                       smdebug.reading.reader
    reduction_config             smdebug.config.reduction_config
    reductions                   smdebug.format.reductions
    s3_utils                     smdebug.compatibility.s3_handler
    sagemaker_utils              smdebug.environment
    save_config                  smdebug.config.save_config
    singleton                    smdebug.capture.singleton
    state_store                  smdebug.capture.state_store
    tensor                       smdebug.reading.tensor
    tfevent.timeline_file_writer smdebug.compatibility.loose_names
    tfevent.util                 smdebug.compatibility.loose_names
    tfrecord.record_reader       smdebug.compatibility.records
    tfrecord.record_writer       smdebug.compatibility.records
    tfrecord.tensor_reader       smdebug.compatibility.records
    utils                        smdebug.compatibility.loose_names
    writer                       smdebug.writing.file_writer

Nothing of this library imports a door. A door is a few lines; at run time it is the module behind it.
"""
